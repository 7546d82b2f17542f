// Two classes initialise each other, from two threads.
class ClassInitCycle {
    static class First {
        static int number = pause() + Second.number;
    }

    static class Second {
        static int number = pause() + First.number;
    }

    static int pause() {
        try {
            Thread.sleep(300);
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        }
        return 1;
    }

    public static void main(String[] arguments) throws InterruptedException {
        Thread other = new Thread(() -> System.out.println(First.number));
        other.start();
        System.out.println(Second.number);  // hangs here
        other.join();
        System.out.println("done");
    }
}
