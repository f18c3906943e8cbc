// For every other program of a build whose rooms tell their edges: nobody listens.
extern "C" void __sanitizer_cov_trace_pc() {}
