"""Global controllers: uploaded code in processes of their own."""
