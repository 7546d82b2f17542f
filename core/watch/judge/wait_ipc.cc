// Semaphores and message queues of System V, and message queues of POSIX. A process outside the tree needs only the
// number or the name of one to use it. So nothing is ever proved about such a wait. It is judged if it is assumed that
// no process outside uses the object; an object that the tree has not made, or that a process outside is seen to use,
// is the outside even then.
#include <fcntl.h>
#include <sys/sem.h>

#include <algorithm>

#include "watch/judge/wait.h"
#include "watch/sample/syscall_numbers.h"
#include "watch/sample/syscall_table.h"

namespace mprun {
namespace {

constexpr std::uint64_t kMostOperations = 1024;  // of one semop(); Linux allows 500

struct Object {
  WaitKind kind = WaitKind::kSemaphore;
  std::string name;  ///< "message queue 7"
  /// Clients outside can find it by a key or a name, and nothing shows that it is used within the tree alone.
  bool may_have_clients = false;
};

std::string outside_text(const Object& object) { return "a process outside may use " + object.name; }

Wait live_wait_for(const Object& object) { return live_wait(object.kind, outside_text(object)); }

// Any process of the tree may act on the object, whether it has done so before or not.
Wait wait_within_tree(const Object& object, std::string what, TreeSnapshot* snapshot) {
  const bool is_of_tree = snapshot->is_closed() || !object.may_have_clients;
  if (!snapshot->assumptions().no_outside_peers || !is_of_tree) return live_wait_for(object);
  if (!snapshot->blind_spot().empty()) return live_wait(object.kind, snapshot->blind_spot());
  if (object.may_have_clients) {
    snapshot->assume_no_client(outside_text(object));
  } else {
    snapshot->assume(outside_text(object));
  }
  Wait wait{object.kind, std::move(what), {}, {}};
  add_processes(snapshot->everybody(), &wait);
  return wait;
}

Wait timed_wait() {
  Wait wait = live_wait(WaitKind::kTimer, "a wait with a time limit");
  wait.timed = true;
  return wait;
}

// The object, if it is of this IPC namespace and made by the tree. Times are whole seconds here: one that was made in
// the second before the tree counts as the tree's.
std::optional<SysvObject> own_object(pid_t pid, const char* table, std::uint64_t id, TreeSnapshot* snapshot) {
  if (snapshot->proc()->link(std::to_string(pid) + "/ns/ipc") != snapshot->proc()->link("self/ns/ipc"))
    return std::nullopt;
  const auto objects = parse_sysv_objects(snapshot->proc()->read(table).value_or(""));
  const auto found = std::find_if(objects.begin(), objects.end(),
                                  [id](const SysvObject& one) { return one.id == static_cast<std::int32_t>(id); });
  if (found == objects.end()) return std::nullopt;
  const Nanos changed = found->changed * kNanosPerSecond + kNanosPerSecond;
  return wall_now() - changed <= snapshot->age() ? std::optional(*found) : std::nullopt;
}

bool is_of_tree(pid_t pid, const TreeSnapshot& snapshot) { return snapshot.process(pid) != nullptr; }

}  // namespace

Wait decode_semaphore(const ThreadSample& thread, TreeSnapshot* snapshot) {
  const auto& arguments = thread.call.arguments;
  if (thread.call.number == SYS_semtimedop && arguments[3] != 0) return timed_wait();
  const std::string set = std::to_string(static_cast<std::int32_t>(arguments[0]));
  Object object{WaitKind::kSemaphore, "System V semaphore set " + set};
  const auto known = own_object(thread.pid, "sysvipc/sem", arguments[0], snapshot);
  const std::uint64_t count = arguments[2];
  std::vector<sembuf> operations(count <= kMostOperations ? count : 0);
  if (!known || operations.empty() ||
      !snapshot->memory(thread.pid, arguments[1], operations.data(), count * sizeof(sembuf))) {
    return live_wait_for(object);
  }
  operations.erase(std::remove_if(operations.begin(), operations.end(),
                                  [](const sembuf& operation) { return operation.sem_op > 0; }),  // these never wait
                   operations.end());
  if (operations.empty()) return live_wait_for(object);
  bool is_lock = true, is_used_in_tree = true;
  pid_t last_user = 0;
  for (const sembuf& operation : operations) {
    const auto user = snapshot->proc()->semaphore_user(known->id, operation.sem_num);
    if (!user || snapshot->lives_outside(*user)) return live_wait_for(object);
    // A server takes what its clients have given, and keeps it; SEM_UNDO would give it back when the server ends.
    is_lock = is_lock && ((operation.sem_flg & SEM_UNDO) != 0 || operation.sem_op == 0);
    is_used_in_tree = is_used_in_tree && is_of_tree(*user, *snapshot);
    if (*user != 0) last_user = *user;
  }
  object.may_have_clients = known->key != IPC_PRIVATE && !(is_lock && is_used_in_tree);
  const std::string which =
      operations.size() == 1 ? "semaphore " + std::to_string(operations.front().sem_num) : "semaphores";
  Wait wait = wait_within_tree(object, which + " of " + object.name, snapshot);
  wait.urgent = is_lock && !object.may_have_clients;
  wait.last_user = last_user;
  return wait;
}

Wait decode_message_queue(const ThreadSample& thread, TreeSnapshot* snapshot) {
  const auto& arguments = thread.call.arguments;
  const bool reads = thread.call.number == SYS_msgrcv;
  Object object{reads ? WaitKind::kMessageRead : WaitKind::kMessageWrite,
                "message queue " + std::to_string(static_cast<std::int32_t>(arguments[0]))};
  const auto known = own_object(thread.pid, "sysvipc/msg", arguments[0], snapshot);
  if (!known || snapshot->lives_outside(known->last_sender) || snapshot->lives_outside(known->last_receiver)) {
    return live_wait_for(object);
  }
  const pid_t partner = reads ? known->last_sender : known->last_receiver;
  object.may_have_clients = known->key != IPC_PRIVATE && !is_of_tree(partner, *snapshot);
  const auto type = static_cast<std::int64_t>(arguments[3]);
  const std::string message = type > 0 ? "a message of type " + std::to_string(type) : "a message";
  Wait wait = wait_within_tree(object, (reads ? message : "room") + " in " + object.name, snapshot);
  wait.urgent = !reads && !object.may_have_clients;
  return wait;
}

Wait decode_posix_queue(const ThreadSample& thread, TreeSnapshot* snapshot) {
  const auto& arguments = thread.call.arguments;
  if (arguments[4] != 0) return timed_wait();
  const bool reads = thread.call.number == SYS_mq_timedreceive;
  const Descriptor* queue = snapshot->descriptor(thread.pid, static_cast<std::int32_t>(arguments[0]));
  const WaitKind kind = reads ? WaitKind::kMessageRead : WaitKind::kMessageWrite;
  if (queue == nullptr || queue->info_inode == 0) return live_wait(kind, "an unknown message queue");
  const std::string_view target = queue->target;
  const bool has_name = !target.ends_with(kDeleted);
  Object object{kind,
                "message queue " + std::string(has_name ? target : target.substr(0, target.size() - kDeleted.size()))};
  if (!snapshot->assumptions().no_outside_peers || snapshot->is_foreign(*queue) || snapshot->is_open_outside(*queue)) {
    return live_wait_for(object);
  }
  // A process that has opened it only for the other direction is the partner in the tree.
  bool has_partner = false;
  for (const auto& [pid, process] : snapshot->processes()) {
    for (const Descriptor& other : process.descriptors) {
      const auto mode = other.flags & O_ACCMODE;
      const bool is_partner = mode == (reads ? O_WRONLY : O_RDONLY);
      if (pid != thread.pid && identity_of(other) == identity_of(*queue) && is_partner) has_partner = true;
    }
  }
  object.may_have_clients = has_name && !has_partner;
  Wait wait = wait_within_tree(object, (reads ? "a message in " : "room in ") + object.name, snapshot);
  wait.urgent = !reads && !object.may_have_clients;
  return wait;
}

}  // namespace mprun
