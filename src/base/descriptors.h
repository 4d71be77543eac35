// Handling of descriptors between fork and exec.
#pragma once

// Closes descriptor `first` and all above it. Uses system calls only.
void close_from(int first);
