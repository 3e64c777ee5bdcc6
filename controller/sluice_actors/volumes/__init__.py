"""What actor hosts do for volumes of Cinder."""
