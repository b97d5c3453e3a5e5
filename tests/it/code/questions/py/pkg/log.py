def log(text): pass
def run(): pass
def get(): pass
helper = lambda: 1
