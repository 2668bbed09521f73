// A CUDA driver that is none, for tests: the functions of src/device/cuda/driver.h over memory that only the driver can
// reach. It holds its user to the protocol, and fails where it is told to.
//
// Work on a stream waits until cuStreamSynchronize: host memory that is gone by then is noticed. Device addresses are
// no addresses of this process. Kernels are those that the test registers by name.
#pragma once

#include <cstdint>

extern "C" {

// Runs a kernel: `values` are its arguments as the launch gave them. 0: done.
typedef int FakeKernel(void* user, const char* entry, unsigned blocks, unsigned threads, const uint64_t* values,
                       int count);
void fake_register(FakeKernel* kernel, void* user);
// The memory behind a device address, `bytes` of which have to be in one allocation; else null, and a violation. Inside
// a kernel.
uint8_t* fake_translate(uint64_t address, int64_t bytes);

// Back to a driver that nobody has used; `capability` 90: sm_90.
void fake_reset(int devices, int capability);
// The call of this number from now on, from 1, fails with error 999; releases are not counted. 0: none.
void fake_fail_at(int call);
// Counted calls since then, and the name of the one that failed or "".
int fake_calls();
const char* fake_failed();
// What is wrong: uses that the protocol forbids, one a line; or "".
const char* fake_violations();
// What has not been given back, one a line; or "".
const char* fake_leaks();

}  // extern "C"
