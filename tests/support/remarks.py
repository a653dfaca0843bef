"""Searches remarks of a report by words, independent of their sentences."""


def remarked(report, *words: str) -> list[str]:
    """The names of the remarks that contain all of the words."""
    return [
        name
        for statement, names in report.remarks.items()
        if all(word in statement for word in words)
        for name in names
    ]
