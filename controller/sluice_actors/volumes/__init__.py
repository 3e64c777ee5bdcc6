"""The services of actor hosts for volumes of Cinder."""
