"""From a program to code: traces, their order and adjoints, and what is emitted from them. No file here knows a model."""
