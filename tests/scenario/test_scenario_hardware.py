"""``cluster.hardware``: presets and figures, of all servers or of some, and what is refused."""

import pytest

from sim.cli.lists import hardware
from sim.errors import ScenarioError
from sim.scenario.loader import load_text
from sim.scenario.model.presets import PRESETS, names_of
from sim.scenario.schema.json_schema import json_schema
from sim.units import MIB
from tests.scenarios.run_kit import text_of

THREE = {"brokers": None, "racks": {"a": 1, "b": 1, "c": 1}}


def text(hardware, **cluster):
    return text_of(cluster={"hardware": hardware, **cluster})


def loaded(hardware, **cluster):
    return load_text(text(hardware, **cluster), "bad.yaml")


def server(scenario, name):
    return next(each for each in scenario.cluster.servers if each.name == name)


def disk(scenario, name):
    return scenario.cluster.disk_of(server(scenario, name))


# -- presets --------------------------------------------------------------------------------------


@pytest.mark.parametrize("preset", PRESETS, ids=lambda preset: f"{preset.part}-{preset.name}")
def test_a_preset_sets_what_it_states_and_nothing_else(preset):
    racks = THREE if preset.part == "zones" else {}
    found, usual = loaded({preset.part: preset.name}, **racks), loaded({}, **racks)
    section = "disk" if preset.part == "disk" else "network"
    figures = getattr(found.cluster, section).plain()
    assert {key: figures[key] for key in preset.plain} == preset.plain
    others = getattr(usual.cluster, section).plain()
    if preset.part == "zones":
        assert figures.pop("client") == figures["same-rack"], "as where it is given by hand"
        others.pop("client")
    assert {key: value for key, value in figures.items() if key not in preset.plain} == {
        key: value for key, value in others.items() if key not in preset.plain
    }


def test_every_preset_says_where_its_figures_are_from_and_what_is_derived():
    rows = {row["preset"]: row for row in hardware()}
    assert len(rows) == len(PRESETS)
    for row in rows.values():
        assert "http" in row["published"] or "IEEE" in row["published"]
        assert row["derived"]
        assert row["figures"]
    assert "flush p50 2ms, p99 9ms" in rows["gp3"]["figures"]


def test_the_baseline_of_gp3_is_the_published_one():
    assert loaded({"disk": "gp3"}).cluster.disk.write_bytes_per_s == 125 * MIB


def test_a_preset_is_a_name_for_its_figures():
    named = loaded({"disk": "hdd", "network": "1gbit"})
    disk_keys, network_keys = (
        next(p.plain for p in PRESETS if p.name == name) for name in ("hdd", "1gbit")
    )
    written = load_text(text_of(cluster={"disk": disk_keys, "network": network_keys}), "bad.yaml")
    assert named.digest == written.digest
    assert named.cluster.hardware is None


def test_figures_may_take_the_place_of_some_of_a_preset():
    found = loaded({"disk": {"preset": "gp3", "write": "500MB/s"}}).cluster.disk
    assert found.write_bytes_per_s == 500_000_000
    assert found.read_bytes_per_s == 125 * MIB


# -- of all servers, and of some ------------------------------------------------------------------

MIXED = {
    "disk": "gp3",
    "cores": 8,
    "servers": {
        "all brokers": {"cores": 4},
        "rack c": {"network": "1gbit", "cores": 6},
        "broker-3": {"disk": {"preset": "hdd", "write": "100MB/s"}, "cores": 2},
        "all controllers": {"disk": "nvme"},
    },
}


def test_what_is_said_of_a_server_counts_before_its_rack_and_that_before_its_class():
    found = loaded(MIXED, **THREE)
    names = ["broker-1", "broker-3", "controller-1", "controller-3"]
    assert [found.cluster.cores_of(server(found, name)) for name in names] == [4, 2, 8, 6]
    one = loaded({"servers": {"all brokers": {"cores": 4}, "rack c": {"cores": 6}}}, **THREE)
    assert [one.cluster.cores_of(server(one, f"broker-{n}")) for n in (1, 2, 3)] == [4, 4, 6]
    assert one.cluster.cores_of(server(one, "controller-1")) == 0, "no limit"


def test_each_figure_is_looked_for_by_itself():
    found = loaded(MIXED, **THREE)
    assert disk(found, "broker-1") == found.cluster.disk
    assert disk(found, "broker-3").write_bytes_per_s == 100_000_000
    assert disk(found, "broker-3").access_us == 11_560
    assert disk(found, "controller-3").flush.p50_us == 60
    assert disk(found, "broker-3").page_cache_bytes == found.cluster.disk.page_cache_bytes
    speeds = [found.cluster.bandwidth_of(server(found, f"broker-{n}")) for n in (1, 2, 3)]
    assert speeds == [1_250_000_000, 1_250_000_000, 125_000_000]


@pytest.mark.parametrize("given", [{"cores": 8}, {"disk": "nvme"}, MIXED, {"servers": {}}])
def test_the_canonical_text_has_the_figures_and_says_the_same(given):
    found = loaded(given, **THREE)
    again = load_text(found.as_yaml(), "bad.yaml")
    assert again == found
    assert again.digest == found.digest
    assert all(name not in found.as_yaml() for name in ("gp3", "nvme", "1gbit", "rack c"))


def test_a_cluster_without_hardware_is_written_as_ever():
    assert "hardware" not in loaded({}).as_yaml()
    assert loaded({}).digest == load_text(text_of(), "bad.yaml").digest


def test_the_run_card_says_what_is_not_as_usual():
    found = {option.path: option for option in loaded(MIXED, **THREE).off_default}
    assert found["cluster.disk.flush.p50"].value == "2ms"
    assert found["cluster.hardware.cores"].default == "no limit"
    assert found["cluster.hardware.servers.broker-3.cores"].default == "8"
    assert found["cluster.hardware.servers.broker-3.disk.flush.p50"].default == "2ms"
    assert "cluster.hardware.servers.broker-2.disk.flush.p50" not in found


@pytest.mark.parametrize(
    ("cluster", "name"),
    [({"combined": 3}, "broker-1"),
     ({"zookeeper": {"servers": 3}, "kafka": "3.9"}, "zookeeper-2")],
)  # fmt: skip
def test_servers_of_every_role_have_a_computer(cluster, name):
    found = loaded({"servers": {name: {"disk": "hdd"}}}, **cluster)
    assert disk(found, name).access_us == 11_560
    assert disk(found, "broker-2").access_us == 100


@pytest.mark.parametrize("disk", names_of("disk"))
def test_a_preset_can_be_set_and_varied_from_the_command_line(disk):
    found = load_text(text({}), "bad.yaml", [f"cluster.hardware.disk={disk}"])
    assert found.cluster.disk == loaded({"disk": disk}).cluster.disk


# -- what is refused ------------------------------------------------------------------------------

TWICE = {"servers": {"all brokers": {"cores": 2}, "all controllers": {"cores": 3}}}
BAD = [
    ("gp3", {}, "hardware", "a mapping such as {disk: gp3"),
    ({"disk": "gp4"}, {}, "hardware.disk", "nvme, nvme-consumer, gp3, hdd; did you mean gp3?"),
    ({"disk": 5}, {}, "hardware.disk", "5; allowed: nvme, nvme-consumer, gp3, hdd, or a mapping"),
    ({"network": "40gbit"}, {}, "hardware.network", "1gbit, 10gbit, 25gbit"),
    ({"network": {"bandwidth": 5}}, {}, "hardware.network.bandwidth", "5 has no unit"),
    ({"zones": "two"}, {}, "hardware.zones", "'two'; allowed: one, three"),
    ({"zones": "three"}, {}, "hardware.zones", "three zones with 0 racks"),
    ({"cores": 0}, {}, "hardware.cores", "greater than or equal to 1"),
    ({"disks": "gp3"}, {}, "hardware.disks", "did you mean disk?"),
    ({"disk": {"flush": {"p50": "9ms", "p99": "8ms"}}}, {}, "hardware.disk.flush", "p50 at most"),
    ({"disk": "gp3"}, {"disk": {"flush": {"p50": "1ms", "p99": "2ms"}}}, "disk.flush",
     "flush beside hardware.disk, which sets it too; allowed: one of the two; remove it, or"),
    ({"network": "1gbit"}, {"network": {"bandwidth": "1GB/s"}}, "network.bandwidth",
     "beside hardware.network"),
    ({"zones": "one"}, {"network": {"cross-rack": {"p50": "1ms", "p99": "2ms"}}},
     "network.cross-rack", "beside hardware.zones, which sets it too"),
    ({"servers": {"brokr-1": {"cores": 2}}}, {}, "hardware.servers.brokr-1", "mean broker-1?"),
    ({"servers": {"shop": {"cores": 2}}}, {}, "hardware.servers.shop", "no server 'shop'"),
    ({"servers": {"rack z": {"cores": 2}}}, THREE, "hardware.servers.rack z", "rack a, rack b, "),
    ({"servers": {"leader of orders-0": {}}}, {}, "hardware.servers.leader of orders-0",
     "no server 'leader of orders-0'"),
    ({"servers": {"broker-1": {"zones": "one"}}}, {}, "hardware.servers.broker-1.zones",
     "unknown key zones"),
    (TWICE, {"combined": 2}, "hardware.servers.all controllers.cores",
     "broker-1 is among all brokers as well, which sets it too"),
    ({"servers": {"all controllers": {"cores": 2}}}, {"zookeeper": {"servers": 3}},
     "hardware.servers.all controllers", "no server 'all controllers'"),
]  # fmt: skip


@pytest.mark.parametrize(("given", "cluster", "path", "says"), BAD)
def test_hardware_that_cannot_be_is_refused_where_it_is(given, cluster, path, says):
    with pytest.raises(ScenarioError) as caught:
        loaded(given, **cluster)
    assert f": cluster.{path}: " in str(caught.value)
    assert says in str(caught.value)


def test_a_figure_that_the_preset_does_not_set_may_stand_beside_it():
    found = loaded({"disk": "gp3", "zones": "one"}, disk={"cache": "4GiB"}).cluster
    assert (found.disk.page_cache_bytes, found.disk.access_us) == (4 << 30, 1_000)
    assert loaded({"servers": {"broker-1": {"disk": "hdd"}}}, disk={"access": "1ms"}), "of one"


def test_a_server_called_by_its_name_settles_what_its_classes_say_twice():
    own = {"servers": {**TWICE["servers"], **{f"broker-{n}": {"cores": n} for n in (1, 2)}}}
    found = loaded(own, combined=2)
    assert [found.cluster.cores_of(server(found, f"broker-{n}")) for n in (1, 2, 3)] == [1, 2, 2]


def test_an_editor_knows_the_presets():
    known = str(json_schema()["$defs"]["DiskFigures"])
    assert all(name in known for name in names_of("disk"))
