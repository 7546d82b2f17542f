// Two threads take two locks of java.util.concurrent in opposite order; main waits for the end of one.
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.locks.Lock;
import java.util.concurrent.locks.ReentrantLock;

class LockCycle {
    static final CountDownLatch both = new CountDownLatch(2);

    static void take(Lock one, Lock other) {
        one.lock();
        both.countDown();
        try {
            both.await();
        } catch (InterruptedException e) {
            return;
        }
        other.lock();  // blocks here
    }

    public static void main(String[] arguments) throws InterruptedException {
        Lock first = new ReentrantLock(), second = new ReentrantLock();
        Thread one = new Thread(() -> take(first, second)), other = new Thread(() -> take(second, first));
        one.start();
        other.start();
        one.join();  // hangs here
        System.out.println("done");
    }
}
