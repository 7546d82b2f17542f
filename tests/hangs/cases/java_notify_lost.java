// The notification comes before the wait, which asks for no condition.
class NotifyLost {
    public static void main(String[] arguments) throws InterruptedException {
        Object object = new Object();
        Thread notifier = new Thread(() -> {
            synchronized (object) {
                object.notify();
            }
        });
        notifier.start();
        notifier.join();
        synchronized (object) {
            object.wait();  // hangs here
        }
        System.out.println("done");
    }
}
