"""Down- and up-sampling of records with time stamps."""
