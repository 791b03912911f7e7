"""The model class: its definition, its instances, its related managers."""
