"""/bw and its parts."""
