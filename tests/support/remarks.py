"""Remarks of a report, found by what they name and not by their sentences."""


def remarked(report, *words: str) -> list[str]:
    """The names of which a remark with all of the words holds."""
    return [
        name
        for statement, names in report.remarks.items()
        if all(word in statement for word in words)
        for name in names
    ]
