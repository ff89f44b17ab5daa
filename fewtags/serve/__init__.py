"""`fewtags serve`: a trained model behind HTTP. Nothing in here imports torch unless a run folder is served."""
