/* check_gpus: checks that a GPU selection matches GPUs of this machine before a recorder is started with it. */
#include "extension.h"

#include "base/env.h"
#include "lib/tracker.h"
#include "sensor/sensor.h"

struct choice {
	const char *gpus, *brand; // borrowed from the arguments
	struct wattle_error error;
};

// Opens the sensors like the recorder, so that errors are the same; ignores GPU visibility limits of the target.
static int update(struct choice *choice)
{
	const struct sensor_options options = {.gpus = choice->gpus, .gpu_brand = choice->brand, .describe_only = true};
	struct wattle_env env;
	struct sensor_set sensors;
	int r = env_open(&env, &choice->error);
	if (r < 0)
		return r;
	fork_lock_take(); // loads driver libraries
	r = sensor_set_open(&sensors, &env, &options, &choice->error);
	if (r == 0)
		sensor_set_close(&sensors);
	fork_lock_release();
	env_close(&env);
	return r;
}

static PyObject *check_gpus(PyObject *module, PyObject *const *arguments, Py_ssize_t n)
{
	if (n < 1 || n > 2)
		return PyErr_Format(PyExc_TypeError, "check_gpus(gpus, brand=None, /) takes 1 or 2 arguments, not %zd",
			n);
	struct choice choice = {.gpus = text_of(arguments[0], "gpus")};
	if (n == 2 && arguments[1] != Py_None)
		choice.brand = text_of(arguments[1], "brand");
	if (PyErr_Occurred() != NULL)
		return NULL;
	int r;
	Py_BEGIN_ALLOW_THREADS
	r = update(&choice);
	Py_END_ALLOW_THREADS
	if (r < 0)
		return raise_code(r, choice.error.text);
	Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
	{"check_gpus", (PyCFunction)(void (*)(void))check_gpus, METH_FASTCALL,
		"check_gpus(gpus, brand=None, /)\n--\n\nChecks that the selected GPUs exist. ValueError lists the GPUs of this machine."},
	{NULL},
};

int add_gpus(PyObject *module)
{
	return PyModule_AddFunctions(module, functions);
}
