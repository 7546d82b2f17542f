// The initialiser of a class takes some seconds, while two threads wait for it. Argument: the seconds.
class SlowClass {
    static double seconds;

    static class Slow {
        static int number = pause();
    }

    static int pause() {
        try {
            Thread.sleep((long) (seconds * 1000));
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        }
        return 1;
    }

    public static void main(String[] arguments) throws InterruptedException {
        seconds = Double.parseDouble(arguments[0]);
        Thread other = new Thread(() -> System.out.println(Slow.number));
        other.start();
        System.out.println(Slow.number);
        other.join();
        System.out.println("done");
    }
}
