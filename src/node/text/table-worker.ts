// A thread that prepares a model's vocabulary for grammars; started, and ended after its answer, by table-thread.ts.
import { parentPort, workerData } from 'node:worker_threads';
import { assert, serializeError } from '../../core/errors.ts';
import { flattenVocabulary } from '../../runtime/vocabulary.ts';
import { buildTableData, type TokenTableData } from '../../sampling/grammar/shared-table.ts';
import { createTokenizer } from '../../tokenizers/tokenizer.ts';
import type { Tokenizer } from '../../tokenizers/types.ts';
import { type ModelFiles, readSameModel } from './same-model.ts';
import type { TableTask } from './table-thread.ts';
import type { TaskAnswer } from '../../platform/node/threads/task-thread.ts';

const port = parentPort;
assert(port !== null, 'table-worker runs as a worker thread');

function answer({ endIds }: TableTask, tokenizer: Tokenizer): TaskAnswer<TokenTableData> {
  try {
    return { result: buildTableData(flattenVocabulary(tokenizer, endIds)) };
  } catch (error) {
    return { error: serializeError(error) };
  }
}

const tokenizer = readSameModel(workerData as ModelFiles, createTokenizer);
if (tokenizer !== null) port.on('message', (task: TableTask) => port.postMessage(answer(task, tokenizer)));
port.postMessage(tokenizer === null ? 'unable' : 'ready');
