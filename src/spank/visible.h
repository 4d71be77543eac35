/* Where Slurm constrains a job's devices, a task counts from 0 what it may see, and CUDA_VISIBLE_DEVICES means those numbers. A
 * recorder stands outside of that constraint: for it, the same numbers are other GPUs. SLURM_STEP_GPUS, or SLURM_JOB_GPUS in a batch
 * script, names the step's GPUs as the node counts them. Those of the whole step are more than one task's, when each has its own; that
 * does no harm, for each is read once, and whose use it is the processes on it tell. */
#pragma once

enum { VISIBLE_ROOM = 2 }; // variables that may be added

/* Rewrites the variables in a NULL-terminated environment that has room. What names GPUs by UUID means the same everywhere and
 * stays. New texts are not freed: an exec follows. */
void visible_of_node(char **environment);
