// One of three tasks fails before it counts the latch down.
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

class LatchShort {
    public static void main(String[] arguments) throws InterruptedException {
        CountDownLatch latch = new CountDownLatch(3);
        ExecutorService executor = Executors.newFixedThreadPool(3);
        for (int i = 0; i < 3; i++) {
            int number = i;
            executor.submit(() -> {
                if (number == 2) {
                    throw new IllegalStateException("nobody asks for this result");
                }
                latch.countDown();
            });
        }
        latch.await();  // hangs here
        executor.shutdown();
        System.out.println("done");
    }
}
