"""The models of models.py by each system: functions of sizes that give a function, which runs the model once."""
