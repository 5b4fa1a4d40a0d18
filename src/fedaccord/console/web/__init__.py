"""What all faces of the console share: the app, its guards, its pages and how it is served."""
