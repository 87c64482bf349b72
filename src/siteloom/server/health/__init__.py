"""How sites and runs do: alarms, charts over time, performance."""
