// Vitest runs this before each test file.
import { afterEach, expect } from 'vitest';
import { runCleanups } from './after-tests.ts';
import { useOwnFolders } from './own-folders.ts';
import './same-bytes.ts';

useOwnFolders(process.env['RUVLLM_TEST_FOLDER']!, expect.getState().testPath!);

// Tests name the embedder that they are about; without this each would look for the default one in the registry.
process.env['RUVLLM_MEMORY_EMBEDDER'] ??= 'static';

afterEach(runCleanups);
