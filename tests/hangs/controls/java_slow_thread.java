// main waits without a limit for a thread that takes its time, in one of four ways.
class SlowThread {
    static final Object monitor = new Object();

    static void sleep(long milliseconds) {
        try {
            Thread.sleep(milliseconds);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    // Asks again and again, and gives up after 20 times.
    static synchronized void poll(long milliseconds) {
        for (int i = 0; i < 20; i++) {
            try {
                SlowThread.class.wait(milliseconds / 20);
            } catch (InterruptedException e) {
                throw new IllegalStateException(e);
            }
        }
    }

    static void hold(long milliseconds) {
        synchronized (monitor) {
            sleep(milliseconds);
        }
    }

    public static void main(String[] arguments) throws InterruptedException {
        long milliseconds = (long) (Double.parseDouble(arguments[0]) * 1000);
        String way = arguments[1];
        Thread thread = new Thread(
                () -> {
                    if (way.equals("poll")) {
                        poll(milliseconds);
                    } else if (way.equals("hold")) {
                        hold(milliseconds);
                    } else {
                        sleep(milliseconds);
                    }
                },
                way.equals("named") ? "VM Thread" : "slow");
        thread.start();
        if (way.equals("hold")) {
            sleep(200);
            synchronized (monitor) {
                monitor.notify();
            }
        }
        thread.join();
        System.out.println("done");
    }
}
