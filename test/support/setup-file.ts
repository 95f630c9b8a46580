// Vitest runs this before each test file.
import { afterEach } from 'vitest';
import { runCleanups } from './after-tests.ts';

// Tests name the embedder that they are about; without this each would look for the default one in the registry.
process.env['RUVLLM_MEMORY_EMBEDDER'] ??= 'static';

afterEach(runCleanups);
