// Descriptors between fork and exec.
#pragma once

// Closes this one and all above it. System calls only.
void close_from(int first);
