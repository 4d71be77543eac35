"""Shared by the tests of wattle.torch: a stand-in for spans that logs which layer was active when, without a
recorder."""
import contextlib
import ctypes
import os
import threading

import wattle.torch
from wattle.torch import observer, session

OBSERVER = os.environ.get("WATTLE_TEST_OBSERVER") == "1"  # : backward by the C++ observer, else by hooks
BEGIN, END = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p), ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Marks:
    """(thread, name, begin or end) of each span, in order of time."""

    def __init__(self):
        self.log = []
        self._names = {}  # of the observer's spans, by key
        self._calls = (ctypes.c_void_p * 2)(*(ctypes.cast(call, ctypes.c_void_p) for call in self._functions()))

    def _functions(self):
        def begin(key, name):
            self._names[key] = name.decode()
            self.log.append((threading.get_ident(), self._names[key], True))

        def end(key):
            self.log.append((threading.get_ident(), self._names[key], False))

        self._kept = BEGIN(begin), END(end)
        return self._kept

    def span_calls(self):
        """What _wattle.span_calls is: for the observer."""
        make = ctypes.pythonapi.PyCapsule_New
        make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return make(self._calls, b"wattle._wattle.span_calls", None)

    def span(self, name):
        return _Span(self, name)

    def names(self, ending=""):
        return [name for _, name, begun in self.log if begun and name.endswith(ending)]

    def forward(self):
        return [name for name in self.names() if not name.endswith(" backward")]

    def backward(self):
        return {name.removesuffix(" backward") for name in self.names(" backward")}

    def check(self):
        """Each thread's spans nest, and none is left open."""
        open_ = {}
        for thread, name, begun in self.log:
            stack = open_.setdefault(thread, [])
            if begun:
                stack.append(name)
            else:
                assert stack and stack[-1] == name, f"{name} ends inside {stack}"
                stack.pop()
        assert not any(open_.values()), open_

    def pairs(self):
        """{(outer, inner)} of spans that were begun one inside the other"""
        open_, found = {}, set()
        for thread, name, begun in self.log:
            stack = open_.setdefault(thread, [])
            if begun:
                found.add((stack[-1] if stack else None, name))
                stack.append(name)
            else:
                stack.pop()
        return found


class _Span:
    def __init__(self, marks, name):
        self.marks, self.name = marks, name

    def __enter__(self):
        self.marks.log.append((threading.get_ident(), self.name, True))
        return self

    def __exit__(self, *unused):
        self.marks.log.append((threading.get_ident(), self.name, False))


class _Wattle:
    """wattle._wattle but for its spans."""

    def __init__(self, marks):
        self.span, self.span_calls = marks.span, marks.span_calls()

    def __getattr__(self, name):
        return getattr(session_wattle, name)


session_wattle = session._wattle
_kept = []  # the observer may hold the functions of earlier ones


@contextlib.contextmanager
def layers(model, **options):
    """(marks, layers object) while `model` is marked"""
    marks = Marks()
    session._wattle = observer._wattle = _Wattle(marks)
    _kept.append(marks)
    try:
        with wattle.torch.layers(model, tracker=False, observer=OBSERVER, **options) as measured:
            assert measured.backward_by == ("observer" if OBSERVER else "hooks")
            yield marks, measured
    finally:
        session._wattle = observer._wattle = session_wattle
    marks.check()
