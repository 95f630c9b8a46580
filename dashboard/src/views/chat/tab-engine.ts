import { signal } from '@preact/signals';
import type * as library from '../../../../src/browser/index.ts';
import { describeModelFile, type ModelFile } from '../../api/models.ts';
import { messageOf } from '../../api/errors.ts';
import { client, onSignOut } from '../../app/session.ts';
import { messages } from '../../messages/index.ts';
import { answerInTab } from './tab-answer.ts';
import { leaveTab, tabFailure, tabModel } from './tab-state.ts';

const text = messages.chat.tab;

/** The library for pages; loaded with the first dialog, because it is larger than the page. */
const ENGINE_URL = '/engine/index.js';
/** 32-bit addresses; the pages of the KV cache need some of it. */
export const MAX_TAB_BYTES = 2 ** 32 - 2 ** 29;

/** The download or load in progress; null: none. */
export interface TabWork {
  readonly id: string;
  readonly phase: 'download' | 'load';
  readonly doneBytes: number;
  readonly totalBytes: number;
  cancel(): void;
}
export const tabWork = signal<TabWork | null>(null);

onSignOut(() => tabWork.value?.cancel());

async function openLibrary(): Promise<typeof library> {
  try {
    return (await import(/* @vite-ignore */ ENGINE_URL)) as typeof library;
  } catch {
    throw new Error(text.noEngine);
  }
}

/** The name of a model's file in the storage: ids can have slashes. */
const fileNameOf = (id: string): string => `${encodeURIComponent(id).slice(0, 180)}.gguf`;

export interface TabOffer {
  readonly file: ModelFile;
  readonly stored: 'no' | 'partly' | 'yes';
}

/** Describes the model on the server, and the part of it that this browser has. */
export async function offerTab(id: string, signal?: AbortSignal): Promise<TabOffer> {
  const [file, { listModels }] = await Promise.all([describeModelFile(client, id, signal), openLibrary()]);
  const found = (await listModels()).find(({ name }) => name === fileNameOf(id));
  if (found === undefined) return { file, stored: 'no' };
  return { file, stored: found.isComplete ? (found.sha256 === file.sha256 ? 'yes' : 'no') : 'partly' };
}

export async function removeFromBrowser(id: string): Promise<void> {
  await (await openLibrary()).removeModel(fileNameOf(id));
}

/** Downloads a model unless it is stored, and runs it; from then on it answers instead of the server. Failures are in `tabFailure`. */
export async function runInTab(id: string, { path, sha256, sizeBytes }: ModelFile): Promise<void> {
  const controller = new AbortController();
  const { signal: aborted } = controller;
  const cancel = (): void => controller.abort();
  tabFailure.value = '';
  tabWork.value = { id, phase: 'download', doneBytes: 0, totalBytes: sizeBytes, cancel };
  try {
    await leaveTab();
    const { loadModel, storeModel } = await openLibrary();
    const onProgress = ({ phase, doneBytes, totalBytes }: library.ModelProgress): void => {
      tabWork.value = { id, phase: phase === 'load' ? 'load' : 'download', doneBytes, totalBytes: totalBytes ?? sizeBytes, cancel }; // prettier-ignore
    };
    const options = { name: fileNameOf(id), sha256, headers: client.headers(), signal: aborted, onProgress };
    const { name } = await storeModel(new URL(path, location.href), options);
    const model = await loadModel(name, { signal: aborted, onProgress });
    model.onLost((error) => {
      tabFailure.value = text.lost(messageOf(error));
      tabModel.value = null;
    });
    tabModel.value = {
      id,
      numThreads: model.modelInfo().numThreads,
      answer: (request, signalOfAnswer) => answerInTab(model, request, signalOfAnswer),
      dispose: () => model.dispose(),
    };
  } catch (error) {
    // Shown in the chat too: the dialog may be closed by now.
    if (!aborted.aborted) tabFailure.value = messageOf(error);
  } finally {
    tabWork.value = null;
  }
}
