"""What every package may use: errors, the model, settings, values, files and wording."""
