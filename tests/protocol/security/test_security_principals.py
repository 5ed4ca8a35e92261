"""Rules that make names of principals out of distinguished names."""

import pytest

from sim.protocol.security.principals import MappingRule, name_of, rules_of

RULES = rules_of(
    r"RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/L, "
    r"RULE:^CN=(.*?),OU=(.*?),O=(.*?),L=(.*?),ST=(.*?),C=(.*?)$/$1@$2/L, "
    r"RULE:^cn=(.*?),ou=(.*?),dc=(.*?),dc=(.*?)$/$1@$2/U, "
    r"RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/U, DEFAULT"
)


@pytest.mark.parametrize(
    ("subject", "name"),
    [
        ("CN=Duke,OU=ServiceUsers,O=Org,C=US", "duke"),
        ("CN=Duke,OU=SME,O=mycp,L=Fulton,ST=MD,C=US", "duke@sme"),
        ("cn=duke,ou=sme,dc=mycp,dc=com", "DUKE@SME"),
        ("cN=duke,OU=JavaSoft,O=Sun", "DUKE"),
        ("OU=JavaSoft,O=Sun,C=US", "OU=JavaSoft,O=Sun,C=US"),
    ],
)
def test_the_first_rule_that_matches_the_whole_name_makes_the_principal(subject, name):
    assert name_of(RULES, subject) == name


def test_without_a_rule_that_matches_there_is_no_principal():
    assert name_of(rules_of("RULE:^CN=a$/x/"), "CN=b") is None
    assert name_of((), "CN=b") is None


@pytest.mark.parametrize(
    "text",
    [
        "default", "DEFAUL", "DEFAULT/L", "RULE:CN=(.*?)/$1", "rule:^CN=(.*?)$/$1/",
        "RULE:^CN=(.*?)$/$1/L/U", "RULE:^CN=(.*?)$/L", "RULE:^CN=(.*?)$/LU",
    ],
)  # fmt: skip
def test_what_is_no_rule_is_refused(text):
    with pytest.raises(ValueError, match=r"."):
        rules_of(text)


def test_rules_are_split_at_commas_that_are_not_part_of_them():
    assert rules_of(" , ,RULE:   /     / ,,  DEFAULT ,") == (
        MappingRule("   ", "     "), MappingRule(is_default=True),
    )  # fmt: skip
    assert rules_of(r"RULE:\**\/+/*/L,RULE:a,b/c,d/U") == (
        MappingRule(r"\**\/+", "*", "L"), MappingRule("a,b", "c,d", "U"),
    )  # fmt: skip


def test_a_reference_without_a_group_is_text():
    [rule] = rules_of("RULE:^CN=(.*?)$/$1@$4-$12/")
    assert rule.apply("CN=x") == "x@$4-x2"


def test_an_escaped_comma_of_a_name_stays_escaped():
    rules = rules_of(r"RULE:^CN=((\\, *|\w)+)(,.*|$)/$1/,DEFAULT")
    assert name_of(rules, r"CN=Tkac\, Adam,OU=ITZ,DC=geodis,DC=cz") == r"Tkac\, Adam"
