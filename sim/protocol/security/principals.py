"""Names of principals by rules about distinguished names: ``ssl.principal.mapping.rules``.

Source: ``SslPrincipalMapper``; KIP-371.
"""

import re
from dataclasses import dataclass

DEFAULT = "DEFAULT"

_REFERENCE = re.compile(r"\\(.)|\$(\d+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class MappingRule:
    """One rule: a pattern for the whole name, a replacement, and a case; or the name itself."""

    pattern: str = ""
    replacement: str = ""
    case: str = ""
    """``L`` for lower, ``U`` for upper."""
    is_default: bool = False

    def apply(self, name: str) -> str | None:
        """Name of the principal; ``None`` if the rule is not about this one."""
        if self.is_default:
            return name
        if re.fullmatch(self.pattern, name) is None:
            return None
        found = re.sub(self.pattern, self._replaced, name)
        return found.lower() if self.case == "L" else found.upper() if self.case == "U" else found

    def _replaced(self, match: re.Match[str]) -> str:
        def meant(reference: re.Match[str]) -> str:
            escaped, digits = reference.groups()
            if escaped is not None:
                return str(escaped)
            # Of $12 only $1 is a reference if there are less than twelve groups.
            for end in range(len(digits), 0, -1):
                if int(digits[:end]) <= match.re.groups:
                    return (match[int(digits[:end])] or "") + digits[end:]
            return f"${digits}"

        return _REFERENCE.sub(meant, self.replacement)


def rules_of(text: str) -> tuple[MappingRule, ...]:
    """Rules in their order; those between two commas may be empty.

    Raises:
        ValueError: With what is no rule.
    """
    rules: list[MappingRule] = []
    place, text = 0, text.strip()
    while place < len(text):
        if text[place] == "," or text[place].isspace():
            place += 1
            continue
        start = place
        if text.startswith(DEFAULT, place):
            place += len(DEFAULT)
            rules.append(MappingRule(is_default=True))
        else:
            rule, place = _rule_at(text, place)
            rules.append(rule)
        rest = text[place:].lstrip()
        if rest and not rest.startswith(","):
            raise ValueError(text[start:])
    return tuple(rules)


def _rule_at(text: str, start: int) -> tuple[MappingRule, int]:
    """The rule that begins there, and its end."""
    if not text.startswith("RULE:", start):
        raise ValueError(text[start:])
    pattern, place = _until_slash(text, start + len("RULE:"), start)
    replacement, place = _until_slash(text, place, start)
    case = text[place : place + 1]
    if case not in ("L", "U"):
        return MappingRule(pattern, replacement), place
    return MappingRule(pattern, replacement, case), place + 1


def _until_slash(text: str, place: int, start: int) -> tuple[str, int]:
    """Text up to a slash without a backslash before it, and the place behind that."""
    begin = place
    while place < len(text) and text[place] != "/":
        place += 2 if text[place] == "\\" else 1
    if place >= len(text):
        raise ValueError(text[start:])
    return text[begin:place], place + 1


def name_of(rules: tuple[MappingRule, ...], subject: str) -> str | None:
    """Name by the first rule that is about a distinguished name; ``None`` without one."""
    for rule in rules:
        found = rule.apply(subject)
        if found is not None:
            return found
    return None
