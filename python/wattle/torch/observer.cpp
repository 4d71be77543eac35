/* Observer of wattle.torch: finds the layer of each backward function and records its span, without Python code in backward.
 *
 * torch numbers the nodes of the autograd graph when they are created, separately in each thread, and passes number and
 * thread when a node runs (RecordFunction). So it suffices to store, for each thread, the numbers at which the innermost
 * layer changed. Nodes that accumulate the gradient of a parameter have no number. They run directly after the node that
 * computed the gradient, so they belong to the layer of that node. (torch 1.13 does not pass the parameter.)
 *
 * Built for one version of torch (observer.py), against Python's limited API. Spans are written by functions of wattle's
 * extension, so a process has one writer. Only functions whose comment mentions the GIL need it. */
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030b0000
#include <Python.h>

#include <ATen/SequenceNumber.h>
#include <ATen/record_function.h>

#include <pthread.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

// As in the extension, ../../extension/span.c: the capsule `span_calls`. A key identifies a span.
extern "C" {
struct span_calls {
	void (*begin)(const void *key, const char *name);
	void (*end)(const void *key);
};
}

namespace
{

constexpr char CALLS[] = "wattle._wattle.span_calls";
constexpr char ROOT[] = "torch::autograd::GraphRoot"; // first node of a backward pass; it computes nothing
constexpr int64_t NO_NUMBER = -1;                     // of AccumulateGrad
constexpr size_t CHANGES_MAX = 1 << 17;               // per thread, 2 MB; beyond that the oldest are dropped
constexpr size_t ENDED_THREADS_MAX = 16;              // their changes are kept for graphs that outlive them

// Forward or backward of a layer: its address is the key of its spans.
struct Column {
	std::string name;
	const Column *backward; // of the same layer; of a backward column: itself

	bool is_backward() const
	{
		return backward == this;
	}
};

struct Change {
	uint64_t number;      // of the first node
	const Column *column; // backward; NULL: outside of all layers
};

struct Log {
	std::deque<Change> changes; // by number
	bool has_forgotten = false;

	void add(uint64_t number, const Column *column)
	{
		if (!changes.empty() && changes.back().number == number) {
			changes.back().column = column; // no node was created in between
			return;
		}
		if ((changes.empty() ? nullptr : changes.back().column) == column)
			return;
		changes.push_back({number, column});
		if (changes.size() <= CHANGES_MAX)
			return;
		changes.pop_front();
		has_forgotten = true;
	}

	// *ret_is_known: false if the change for this node was dropped.
	const Column *find(uint64_t number, bool *ret_is_known) const
	{
		auto after = std::upper_bound(changes.begin(), changes.end(), number,
			[](uint64_t wanted, const Change &change) { return wanted < change.number; });
		*ret_is_known = after != changes.begin() || !has_forgotten;
		return after == changes.begin() ? nullptr : std::prev(after)->column;
	}
};

struct Session;
std::mutex lock; // guards `current` and logs; never held while Python or torch is called
// The active session; NULL: none. Never destroyed, because threads may run while the process ends.
std::shared_ptr<Session> &current = *new std::shared_ptr<Session>;

struct Session {
	const span_calls *calls;
	PyObject *unwind; // ends columns that exceptions left open in this thread; with the GIL only, NULL after the end
	at::CallbackHandle callback = at::INVALID_CALLBACK_HANDLE;
	std::deque<Column> columns;                              // addresses stay
	std::unordered_map<uint64_t, std::shared_ptr<Log>> logs; // by torch's number of the thread
	std::deque<uint64_t> ended;                              // threads, in the order in which they ended
	bool has_forgotten_threads = false;
	uint64_t unknown = 0; // nodes whose layer is unknown, because the change was dropped

	Session(const span_calls *span_calls, PyObject *unwind_stacks) : calls(span_calls), unwind(unwind_stacks)
	{
	}

	std::shared_ptr<Log> log_of(uint64_t thread)
	{
		std::lock_guard<std::mutex> guard(lock);
		std::shared_ptr<Log> &log = logs[thread];
		if (!log)
			log = std::make_shared<Log>();
		return log;
	}

	void end_thread(uint64_t thread)
	{
		std::lock_guard<std::mutex> guard(lock);
		ended.push_back(thread);
		if (ended.size() <= ENDED_THREADS_MAX)
			return;
		has_forgotten_threads |= !logs[ended.front()]->changes.empty();
		logs.erase(ended.front());
		ended.pop_front();
	}

	const Column *find(uint64_t thread, uint64_t number)
	{
		std::lock_guard<std::mutex> guard(lock);
		auto log = logs.find(thread);
		bool is_known = !has_forgotten_threads;
		const Column *column = log != logs.end() ? log->second->find(number, &is_known) : nullptr;
		unknown += !is_known;
		return column;
	}
};

std::shared_ptr<Session> current_session()
{
	std::lock_guard<std::mutex> guard(lock);
	return current;
}

// Open columns of a thread, in forward and in backward.
struct Thread {
	uint64_t number = at::RecordFunction::currentThreadId();
	std::shared_ptr<Session> session;
	std::shared_ptr<Log> log;
	std::vector<const Column *> open; // outermost first
	const Column *last = nullptr;     // the node that ran last

	~Thread()
	{
		if (session)
			session->end_thread(number);
	}

	void join(const std::shared_ptr<Session> &wanted)
	{
		if (session == wanted)
			return;
		open.clear();
		last = nullptr;
		log = wanted->log_of(number);
		session = wanted;
	}

	void note()
	{
		uint64_t next = at::sequence_number::peek();
		std::lock_guard<std::mutex> guard(lock);
		log->add(next, open.empty() ? nullptr : open.back()->backward);
	}

	void begin(const Column *column)
	{
		open.push_back(column);
		session->calls->begin(column, column->name.c_str());
		note();
	}

	// Ends the innermost entry of this column, if it was not ended together with an enclosing one.
	void end(const Column *column)
	{
		auto found = std::find(open.rbegin(), open.rend(), column);
		if (found == open.rend())
			return;
		open.erase(std::next(found).base());
		session->calls->end(column);
		note();
	}

	void end_all_above(size_t depth)
	{
		while (open.size() > depth) {
			session->calls->end(open.back());
			open.pop_back();
		}
		note();
	}
};

thread_local Thread this_thread;

/* ---- backward ---- */

struct Node : at::ObserverContext {
	std::shared_ptr<Session> session;
	size_t depth; // depth of the thread's stack before the node

	Node(std::shared_ptr<Session> its_session, size_t its_depth) : session(std::move(its_session)), depth(its_depth)
	{
	}
};

const Column *column_of(Session &session, const at::RecordFunction &function, const Column *last)
{
	if (function.seqNr() == NO_NUMBER)
		return last;
	if (std::strcmp(function.name(), ROOT) == 0)
		return nullptr;
	return session.find(function.forwardThreadId(), static_cast<uint64_t>(function.seqNr()));
}

// Python's frames show whether the forward that this backward runs in continues or raised an exception. Takes the GIL.
void unwind(Session &session)
{
	PyGILState_STATE state = PyGILState_Ensure();
	PyObject *call = session.unwind;
	if (call != nullptr) {
		Py_INCREF(call);
		PyObject *result = PyObject_CallNoArgs(call);
		if (result == nullptr)
			PyErr_WriteUnraisable(call);
		Py_XDECREF(result);
		Py_DECREF(call);
	}
	PyGILState_Release(state);
}

std::unique_ptr<at::ObserverContext> before_node(const at::RecordFunction &function)
{
	std::shared_ptr<Session> session = current_session();
	if (!session)
		return nullptr;
	Thread &thread = this_thread;
	thread.join(session);
	if (!thread.open.empty() && !thread.open.back()->is_backward())
		unwind(*session);
	const Column *column = thread.last = column_of(*session, function, thread.last);
	if (column == nullptr)
		return nullptr;
	auto node = std::make_unique<Node>(session, thread.open.size());
	thread.begin(column);
	return node;
}

// Also called when the node raises an exception: ends the columns that it left open.
void after_node(const at::RecordFunction &, at::ObserverContext *context)
{
	auto *node = static_cast<Node *>(context);
	if (node != nullptr && this_thread.session == node->session)
		this_thread.end_all_above(node->depth);
}

/* ---- forward, and what Python calls; all with the GIL ---- */

struct Forward {
	std::shared_ptr<Session> session;
	const Column *column;
};

void free_forward(PyObject *capsule)
{
	delete static_cast<Forward *>(PyCapsule_GetPointer(capsule, nullptr));
}

PyObject *enter(PyObject *self, PyObject *)
{
	auto *forward = static_cast<Forward *>(PyCapsule_GetPointer(self, nullptr));
	this_thread.join(forward->session);
	this_thread.begin(forward->column);
	Py_RETURN_NONE;
}

PyObject *leave(PyObject *self, PyObject *const *, Py_ssize_t)
{
	auto *forward = static_cast<Forward *>(PyCapsule_GetPointer(self, nullptr));
	if (this_thread.session == forward->session)
		this_thread.end(forward->column);
	Py_RETURN_NONE;
}

PyMethodDef ENTER = {"enter", enter, METH_NOARGS, "Forward of the layer begins."};
PyMethodDef LEAVE = {"leave", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(leave)), METH_FASTCALL,
	"Forward of the layer ends."};

PyObject *open(PyObject *, PyObject *arguments)
{
	PyObject *capsule, *unwind_stacks;
	if (!PyArg_ParseTuple(arguments, "OO:open", &capsule, &unwind_stacks))
		return nullptr;
	auto *calls = static_cast<const span_calls *>(PyCapsule_GetPointer(capsule, CALLS));
	if (calls == nullptr)
		return nullptr;
	auto session = std::make_shared<Session>(calls, unwind_stacks);
	{
		std::lock_guard<std::mutex> guard(lock);
		if (current)
			return PyErr_Format(PyExc_RuntimeError, "the observer serves one layers() at a time");
		current = session;
	}
	Py_INCREF(unwind_stacks);
	session->callback = at::addGlobalCallback(
		at::RecordFunctionCallback(before_node, after_node).scopes({at::RecordScope::BACKWARD_FUNCTION}));
	Py_RETURN_NONE;
}

PyObject *callables(const std::shared_ptr<Session> &session, const Column *column)
{
	auto *forward = new Forward{session, column};
	PyObject *capsule = PyCapsule_New(forward, nullptr, free_forward);
	if (capsule == nullptr) {
		delete forward;
		return nullptr;
	}
	PyObject *begin = PyCFunction_NewEx(&ENTER, capsule, nullptr),
		 *end = PyCFunction_NewEx(&LEAVE, capsule, nullptr);
	Py_DECREF(capsule);
	PyObject *both = begin != nullptr && end != nullptr ? PyTuple_Pack(2, begin, end) : nullptr;
	Py_XDECREF(begin);
	Py_XDECREF(end);
	return both;
}

PyObject *add(PyObject *, PyObject *arguments)
{
	const char *forward, *backward;
	if (!PyArg_ParseTuple(arguments, "ss:add", &forward, &backward))
		return nullptr;
	std::shared_ptr<Session> session = current_session();
	if (!session)
		return PyErr_Format(PyExc_RuntimeError, "the observer was not opened");
	session->columns.push_back({backward, nullptr});
	Column &second = session->columns.back();
	second.backward = &second;
	session->columns.push_back({forward, &second});
	return callables(session, &session->columns.back());
}

PyObject *close(PyObject *, PyObject *)
{
	std::shared_ptr<Session> session;
	{
		std::lock_guard<std::mutex> guard(lock);
		session.swap(current);
	}
	if (!session)
		return PyLong_FromLong(0);
	at::removeCallback(session->callback);
	Py_CLEAR(session->unwind);
	std::lock_guard<std::mutex> guard(lock);
	return PyLong_FromUnsignedLongLong(session->unknown);
}

PyMethodDef methods[] = {
	{"open", open, METH_VARARGS, "open(span_calls, unwind, /)\n--\n\nObserves from now on."},
	{"add", add, METH_VARARGS,
		"add(forward, backward, /)\n--\n\nA layer, by its spans' names: what is to be called when its forward begins and "
		"ends."},
	{"close", close, METH_NOARGS,
		"close()\n--\n\nNo more: how many backward functions are nobody's because they were too old."},
	{nullptr, nullptr, 0, nullptr},
};

PyModuleDef definition = {PyModuleDef_HEAD_INIT, "wattle.torch._observer",
	"Backward in C++; see wattle/torch/observer.py.", -1, methods, nullptr, nullptr, nullptr, nullptr};

} // namespace

PyMODINIT_FUNC PyInit__observer(void)
{
	PyObject *module = PyModule_Create(&definition);
	if (module == nullptr)
		return nullptr;
	// A fork while another thread holds the lock must not leave it held in the child.
	pthread_atfork([] { lock.lock(); }, [] { lock.unlock(); }, [] { lock.unlock(); });
	if (PyModule_AddStringConstant(module, "TORCH", WATTLE_TORCH) < 0)
		Py_CLEAR(module);
	return module;
}
