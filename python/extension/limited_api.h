/* Python.h, and what the extension uses beyond the limited API of 3.9. Every version since 3.9 exports these functions and has
 * this struct, but its limited API has them later: METH_FASTCALL and PyUnicode_AsUTF8AndSize since 3.10, buffers since 3.11.
 * Headers of any version therefore leave them out here. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#if !defined(Py_LIMITED_API) || Py_LIMITED_API + 0 != 0x03090000
#error "the extension is built for the limited API of Python 3.9"
#endif

PyAPI_FUNC(const char *) PyUnicode_AsUTF8AndSize(PyObject *text, Py_ssize_t *ret_size);

// Python's function is of 3.10 and later.
static inline PyObject *new_reference(PyObject *object)
{
	Py_INCREF(object);
	return object;
}
#undef Py_NewRef
#define Py_NewRef(object) new_reference(object)

// As PyModule_AddObjectRef of 3.10: PyModule_AddObject takes the reference only if it succeeds.
static inline int module_add(PyObject *module, const char *name, PyObject *object)
{
	int r = PyModule_AddObject(module, name, Py_NewRef(object));
	if (r < 0)
		Py_DECREF(object);
	return r;
}

#ifndef METH_FASTCALL
#define METH_FASTCALL 0x0080
#endif
#ifndef Py_TPFLAGS_IMMUTABLETYPE
#define Py_TPFLAGS_IMMUTABLETYPE (1UL << 8) // since 3.10; 3.9 ignores it
#endif

/* ---- PEP 3118 ---- */

#define Py_bf_getbuffer 1
#define PyBUF_WRITABLE 0x0001
#define PyBUF_FORMAT 0x0004
#define PyBUF_ND 0x0008
#define PyBUF_STRIDES (0x0010 | PyBUF_ND)
#define PyBUF_C_CONTIGUOUS (0x0020 | PyBUF_STRIDES)
#define PyBUF_F_CONTIGUOUS (0x0040 | PyBUF_STRIDES)
#define PyBUF_ANY_CONTIGUOUS (0x0080 | PyBUF_STRIDES)
#define PyBUF_CONTIG_RO PyBUF_ND

typedef struct {
	void *buf;
	PyObject *obj;
	Py_ssize_t len, itemsize;
	int readonly, ndim;
	char *format;
	Py_ssize_t *shape, *strides, *suboffsets;
	void *internal;
} Py_buffer;

PyAPI_FUNC(int) PyObject_GetBuffer(PyObject *object, Py_buffer *ret_view, int flags);
PyAPI_FUNC(void) PyBuffer_Release(Py_buffer *view);
