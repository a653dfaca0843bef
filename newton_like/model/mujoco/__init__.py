"""Settings of MuJoCo as custom attributes of a model."""
