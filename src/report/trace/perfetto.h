/* The numbers of Perfetto's messages, as far as a trace of ours has them: perfetto.dev/docs/reference/trace-packet-proto. */
#pragma once

enum { TRACE_PACKET = 1 };

enum packet_field {
	PACKET_CLOCK_SNAPSHOT = 6,
	PACKET_TIMESTAMP = 8,
	PACKET_SEQUENCE_ID = 10,
	PACKET_TRACK_EVENT = 11,
	PACKET_INTERNED_DATA = 12,
	PACKET_SEQUENCE_FLAGS = 13,
	PACKET_DEFAULTS = 59,
	PACKET_TRACK_DESCRIPTOR = 60,
	PACKET_FIRST_ON_SEQUENCE = 87
};
enum sequence_flags { SEQUENCE_STATE_CLEARED = 1, SEQUENCE_NEEDS_STATE = 2 };
enum defaults_field { DEFAULTS_TIMESTAMP_CLOCK = 58 };

enum clock_snapshot_field { SNAPSHOT_CLOCK = 1, SNAPSHOT_PRIMARY_CLOCK = 2 };
enum clock_field { CLOCK_ID = 1, CLOCK_TIMESTAMP = 2 };
enum clock_id { BUILTIN_REALTIME = 1, BUILTIN_MONOTONIC = 3, BUILTIN_BOOTTIME = 6 };

enum track_field {
	TRACK_UUID = 1,
	TRACK_NAME = 2,
	TRACK_PROCESS = 3,
	TRACK_THREAD = 4,
	TRACK_PARENT_UUID = 5,
	TRACK_COUNTER = 8,
	TRACK_CHILD_ORDERING = 11,
	TRACK_SIBLING_RANK = 12,
	TRACK_DESCRIPTION = 14
};
enum child_ordering { ORDERING_EXPLICIT = 3 };
enum process_field { PROCESS_ID = 1, PROCESS_NAME = 6, PROCESS_START_NS = 7 };
enum thread_field { THREAD_PID = 1, THREAD_TID = 2, THREAD_NAME = 5 };
enum counter_field { COUNTER_UNIT = 3, COUNTER_UNIT_NAME = 6, COUNTER_AXIS_KEY = 7 };
enum counter_unit { UNIT_BYTES = 3 };

enum event_field {
	EVENT_ANNOTATION = 4,
	EVENT_TYPE = 9,
	EVENT_NAME_IID = 10,
	EVENT_TRACK_UUID = 11,
	EVENT_CATEGORY = 22,
	EVENT_NAME = 23,
	EVENT_DOUBLE_VALUE = 44
};
enum interned_field { INTERNED_EVENT_NAME = 2 };
enum event_name_field { EVENT_NAME_NUMBER = 1, EVENT_NAME_TEXT = 2 };

enum track_event_type { EVENT_SLICE_BEGIN = 1, EVENT_SLICE_END = 2, EVENT_INSTANT = 3, EVENT_COUNTER = 4 };
enum annotation_field { ANNOTATION_INT = 4, ANNOTATION_DOUBLE = 5, ANNOTATION_TEXT = 6, ANNOTATION_NAME = 10 };
