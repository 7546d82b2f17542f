// waitFor() before the child's output is read, which does not fit into the pipe (as in JDK-4098442).
class ChildOutput {
    public static void main(String[] arguments) throws Exception {
        Process child = new ProcessBuilder("head", "-c", "1000000", "/dev/zero").start();
        child.waitFor();  // hangs here
        System.out.println("done");
    }
}
