#include "helper/server.h"

#include "base/util.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { SWEEP_MS = 1000 };

// Queue of client slots. No slot is in it twice, so it has room for all.
struct queue {
	int fd; // owned eventfd that counts the entries
	pthread_mutex_t mutex;
	uint32_t *indices; // owned
	size_t capacity, first, n;
};

struct worker {
	struct limits *limits; // borrowed, as are env and data
	const struct wattle_env *env;
	worker_serve_fn serve;
	void *data;
	struct queue asked, done;
	atomic_bool is_stopping;
	bool has_thread;
	pthread_t thread;
};

/* ---- queues ---- */

static int queue_init(struct queue *queue, size_t capacity)
{
	*queue = (struct queue){.mutex = PTHREAD_MUTEX_INITIALIZER, .capacity = capacity};
	queue->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK | EFD_SEMAPHORE);
	queue->indices = calloc_array(capacity, sizeof(queue->indices[0]));
	return queue->fd < 0 ? -errno : queue->indices == NULL ? -ENOMEM : 0;
}

static void queue_finish(struct queue *queue)
{
	if (queue->fd >= 0)
		close(queue->fd);
	free(queue->indices);
	pthread_mutex_destroy(&queue->mutex);
}

static void count_one(struct queue *queue)
{
	ssize_t written = write(queue->fd, &(uint64_t){1}, sizeof(uint64_t));
	(void)written; // can't overflow: it counts far beyond the number of slots
}

static void put(struct queue *queue, uint32_t index)
{
	pthread_mutex_lock(&queue->mutex);
	queue->indices[(queue->first + queue->n++) % queue->capacity] = index;
	pthread_mutex_unlock(&queue->mutex);
	count_one(queue);
}

static bool take(struct queue *queue, uint32_t *ret_place)
{
	uint64_t one;
	if (read(queue->fd, &one, sizeof(one)) != sizeof(one))
		return false;
	pthread_mutex_lock(&queue->mutex);
	bool is_there = queue->n > 0;
	if (is_there) {
		*ret_place = queue->indices[queue->first];
		queue->first = (queue->first + 1) % queue->capacity;
		queue->n--;
	}
	pthread_mutex_unlock(&queue->mutex);
	return is_there;
}

/* ---- worker thread ---- */

// Handles ended processes before requests: a limit is restored within a second of its owner's end, however many
// requests are queued.
static void *work(void *data)
{
	struct worker *worker = data;
	struct pollfd wanted[] = {{.fd = worker->asked.fd, .events = POLLIN},
		{.fd = limits_fd(worker->limits), .events = POLLIN}};
	while (!atomic_load(&worker->is_stopping)) {
		uint32_t index;
		poll(wanted, ARRAY_SIZE(wanted), SWEEP_MS);
		limits_turn(worker->limits);
		limits_sweep(worker->limits, env_now_ns(worker->env));
		if (atomic_load(&worker->is_stopping) || !take(&worker->asked, &index))
			continue;
		worker->serve(worker->data, index);
		put(&worker->done, index);
	}
	return NULL;
}

/* ---- interface for the owner ---- */

int worker_start(struct limits *limits, const struct wattle_env *env, size_t n_slots, worker_serve_fn serve, void *data,
	struct worker **ret_worker)
{
	struct worker *worker = calloc(1, sizeof(*worker));
	if (worker == NULL)
		return -ENOMEM;
	worker->limits = limits;
	worker->env = env;
	worker->serve = serve;
	worker->data = data;
	int r = queue_init(&worker->asked, n_slots);
	int r_done = queue_init(&worker->done, n_slots);
	r = r < 0 ? r : r_done;
	if (r == 0)
		r = -pthread_create(&worker->thread, NULL, work, worker);
	worker->has_thread = r == 0;
	if (r < 0) {
		worker_stop(worker);
		return r;
	}
	*ret_worker = worker;
	return 0;
}

void worker_stop(struct worker *worker)
{
	if (worker == NULL)
		return;
	if (worker->has_thread) {
		atomic_store(&worker->is_stopping, true);
		count_one(&worker->asked); // wakes the thread
		pthread_join(worker->thread, NULL);
	}
	queue_finish(&worker->asked);
	queue_finish(&worker->done);
	free(worker);
}

int worker_fd(const struct worker *worker)
{
	return worker->done.fd;
}

void worker_give(struct worker *worker, uint32_t index)
{
	put(&worker->asked, index);
}

bool worker_take(struct worker *worker, uint32_t *ret_place)
{
	return take(&worker->done, ret_place);
}
