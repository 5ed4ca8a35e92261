"""``make quick`` runs the tests that are nearest to what has changed, and says what it left out."""

from pathlib import Path

from tools.quick import choose, importers, imports_of_tests, mirror_of, module_of, rings

ROOT = Path(__file__).parents[1]
IMPORTS = {
    "tests/log/test_further.py": frozenset({"sim.log.log"}),
    "tests/log/test_far.py": frozenset({"sim.log.reader"}),
    "tests/log/test_near.py": frozenset({"sim.log.store"}),
    "tests/log/test_other.py": frozenset({"sim.units"}),
}
IMPORTERS = {"sim.log.store": [frozenset({"sim.log.reader"}), frozenset({"sim.log.log"})]}


def test_tests_of_the_changed_module_come_before_those_of_its_importers():
    choice = choose(["sim/log/store.py"], IMPORTS, IMPORTERS)
    assert choice.files == tuple(f"tests/log/test_{name}.py" for name in ("near", "far", "further"))
    assert choice.left_out == 0


def test_a_changed_test_is_run_first_and_what_is_beyond_the_limit_is_counted():
    choice = choose(["sim/log/store.py", "tests/log/test_far.py"], IMPORTS, IMPORTERS, limit=1)
    assert choice.files == ("tests/log/test_far.py",)
    assert choice.left_out == 2


def test_tests_of_whole_clusters_are_left_to_make_test():
    clusters = {
        "tests/scenarios/test_whole.py": frozenset({"sim.log.store"}),
        "tests/scenarios/test_more.py": frozenset({"sim.log.log"}),
    }
    choice = choose(["sim/log/store.py"], IMPORTS | clusters, IMPORTERS)
    assert not set(clusters) & set(choice.files)
    assert choice.left_out == 1, "of those that import it, or who imports it"


def test_each_importer_is_in_the_nearest_ring():
    by = {"a": ("b", "c"), "b": ("c", "d"), "c": ("a",), "d": ()}
    assert rings("a", by.__getitem__) == [frozenset("bc"), frozenset("d")]
    assert rings("d", by.__getitem__) == []


def test_a_part_that_only_its_owner_imports_has_the_tests_of_its_package():
    changed = ["sim/protocol/coordinator/group/migration.py"]
    files = choose(changed, imports_of_tests(ROOT), importers(changed)).files
    assert "tests/protocol/coordinator/test_group_migration.py" in files
    assert any(path.startswith("tests/kips/") for path in files)


def test_every_package_of_the_simulator_has_a_folder_of_tests():
    assert mirror_of("sim/log/store/files.py") == "tests/log/"
    assert mirror_of("sim/protocol/broker/replication/fetch.py") == "tests/protocol/broker/"
    assert mirror_of("analysis/report/page.py") == "tests/analysis/"


def test_a_document_has_no_nearest_tests():
    assert choose(["docs/guide/first.md"], IMPORTS, IMPORTERS).files == ()


def test_a_package_is_named_by_its_init_file():
    assert module_of("sim/log/__init__.py") == "sim.log"


def test_a_test_imports_what_its_helpers_import():
    found = imports_of_tests(ROOT)["tests/protocol/broker/test_fetch_path_sessions.py"]
    assert "sim.protocol.broker.fetch_session" in found
    assert "sim.protocol.broker.replication.replica_manager" in found, "by the kit's import"


def test_dialogues_and_tests_of_kips_are_near_to_all_of_the_protocol():
    whole = {
        "tests/dialogues/test_dialogues.py": frozenset({"sim.protocol.kraft.raft"}),
        "tests/kips/test_kip_853.py": frozenset({"sim.protocol.kraft.raft"}),
        "tests/scenarios/test_whole.py": frozenset({"sim.protocol.kraft.raft"}),
    }
    choice = choose(["sim/protocol/kraft/raft.py"], whole, {})
    assert choice.files == ("tests/dialogues/test_dialogues.py", "tests/kips/test_kip_853.py")
    assert choice.left_out == 1
    assert choose(["sim/log/store.py"], whole, {}).files == ()


def test_a_changed_dialogue_is_played():
    played = {"tests/dialogues/test_dialogues.py": frozenset({"sim.kernel"})}
    choice = choose(["tests/dialogues/isr-shrink.txt"], IMPORTS | played, IMPORTERS)
    assert choice.files == ("tests/dialogues/test_dialogues.py",)
