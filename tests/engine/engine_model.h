/* What the files of engine_model share. */
#ifndef TESTS_ENGINE_MODEL_H
#define TESTS_ENGINE_MODEL_H

/* Tables of kernels for a model's products: engine_model_tuning.c. */
void test_tuning(void);

#endif
