//! Terminals of a worker's own: shells of agents ask for one.

use crate::support::World;

/// Runs a script in the jail, and answers what it has written.
#[track_caller]
fn tried(script: &str) -> String {
    let world = World::new();
    world.configure("[workers.coder]\ntype = \"cli\"\nbinary = \"/usr/bin/python3\"\n");
    let output = world.command(&["jail", "try", "--", "python3", "-c", script]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_shell_gets_a_terminal_and_reads_what_is_typed_there() {
    let said = tried(
        "import os, pty, sys\n\
         child, end = pty.fork()\n\
         if child == 0:\n\
         \x20   os.execvp('sh', ['sh', '-c', 'tty; stty size; read word; echo got $word'])\n\
         os.write(end, b'typed\\n')\n\
         said = b''\n\
         try:\n\
         \x20   while piece := os.read(end, 1000):\n\
         \x20       said += piece\n\
         except OSError:\n\
         \x20   pass\n\
         print(said.decode())\n\
         print(os.waitpid(child, 0)[1])\n",
    );
    assert!(said.contains("/dev/pts/0") && said.contains("got typed"), "{said}");
    assert!(said.trim_end().ends_with('0'), "{said}");
}

#[test]
fn there_are_some_and_no_more() {
    let said = tried(
        "import os\n\
         print(sorted(os.listdir('/dev/pts')))\n\
         held = []\n\
         try:\n\
         \x20   while True:\n\
         \x20       held.append(os.openpty())\n\
         except OSError as error:\n\
         \x20   print(len(held), error.errno)\n\
         [os.close(end) for pair in held for end in pair]\n\
         print(os.ttyname(os.openpty()[1]))\n",
    );
    // None of the host's, 32, and again after they are given back.
    assert_eq!(said, "['ptmx']\n32 28\n/dev/pts/0\n");
}
