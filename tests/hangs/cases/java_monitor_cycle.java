// Two threads take two monitors in opposite order (as in JDK-7031830 and many others).
import java.util.concurrent.CountDownLatch;

class MonitorCycle {
    static final Object first = new Object(), second = new Object();
    static final CountDownLatch both = new CountDownLatch(2);

    static void take(Object one, Object other) {
        synchronized (one) {
            both.countDown();
            try {
                both.await();
            } catch (InterruptedException e) {
                return;
            }
            synchronized (other) {  // hangs here
                System.out.println("done");
            }
        }
    }

    public static void main(String[] arguments) {
        new Thread(() -> take(second, first)).start();
        take(first, second);
    }
}
