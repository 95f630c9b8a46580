// Chat with a model in this tab: model, prefix cache, conversation and notes are kept in the storage of the page.
import {
  detectCapabilities,
  listModels,
  loadModel,
  openDeviceKey,
  openMemory,
  removeModel,
  RuvLLMError,
  storeModel,
} from './ruvllm/index.js';

const TENANT = 'local';
const CONVERSATION = 'conversation';
const LAST_MODEL = 'last-model';
const FOREVER_MS = Date.UTC(9999, 0);

const find = (id) => document.getElementById(id);
const state = { key: null, memory: null, model: null, messages: [], abort: null, isBusy: false };

function say(text) {
  find('status').textContent = text;
}

/** What happened and what to do, in words. */
const ADVICE = {
  in_use: 'Another tab has this page open. Close that tab, then reload this one.',
  disk_full: 'The browser has no space left for this page. Remove a stored model or free some disk space.',
  invalid_model_file: 'This is not a complete GGUF file. Nothing was stored.',
  unsupported: 'This browser or this model is not supported.',
  out_of_memory: 'This model does not fit into the memory of a tab.',
  download_failed: 'The download stopped. Try again: it continues where it ended.',
  engine_crashed: 'The engine ended unexpectedly. Your conversation is kept; load the model again.',
};

function report(error) {
  const advice = error instanceof RuvLLMError ? ADVICE[error.code] : undefined;
  const problem = find('problem');
  problem.textContent = [advice, error.message].filter(Boolean).join(' ');
  problem.dataset.code = error.code ?? '';
  problem.hidden = false;
}

async function attempt(run) {
  find('problem').hidden = true;
  try {
    return await run();
  } catch (error) {
    report(error);
    return undefined;
  } finally {
    find('progress').hidden = true;
  }
}

function showProgress({ phase, doneBytes, totalBytes }) {
  const progress = find('progress');
  progress.hidden = false;
  if (totalBytes !== null) {
    progress.max = totalBytes;
    progress.value = doneBytes;
  }
  const verb = phase === 'load' ? 'Loading' : 'Storing';
  say(
    `${verb}: ${(doneBytes / 1e6).toFixed(0)} MB${totalBytes === null ? '' : ` of ${(totalBytes / 1e6).toFixed(0)} MB`}`,
  );
}

async function showModels() {
  const items = (await listModels()).map(({ name, sizeBytes, isComplete }) => {
    const item = document.createElement('li');
    const load = document.createElement('button');
    load.textContent = `Load ${name}`;
    load.disabled = !isComplete;
    load.addEventListener('click', () => void attempt(() => openModel(name)));
    const remove = document.createElement('button');
    remove.textContent = `Remove ${name}`;
    remove.addEventListener('click', () => void attempt(async () => (await removeModel(name), showModels())));
    item.append(
      load,
      ' ',
      remove,
      ` ${(sizeBytes / 1e6).toFixed(0)} MB${isComplete ? '' : ', incomplete: choose it again'}`,
    );
    return item;
  });
  find('models').replaceChildren(...items);
}

async function openModel(name) {
  await state.model?.dispose();
  state.model = null;
  find('send').disabled = true;
  const { key, memory } = state;
  state.model = await loadModel(name, { kvSpill: { key }, memory, onProgress: showProgress });
  state.model.onLost((error) => {
    find('send').disabled = true;
    report(error);
    say('No model is loaded.');
  });
  localStorage.setItem(LAST_MODEL, name);
  find('send').disabled = false;
  const { isIsolated, numThreads } = detectCapabilities();
  const threads = isIsolated ? `${numThreads} threads` : '1 thread (the page is not cross-origin isolated)';
  say(`${name} is ready: ${threads}.`);
}

async function add(source) {
  const { name } = await storeModel(source, { onProgress: showProgress });
  await showModels();
  await openModel(name);
}

function showMessages() {
  const items = state.messages.map(({ role, content }) => {
    const item = document.createElement('li');
    item.className = role;
    item.textContent = content;
    return item;
  });
  find('messages').replaceChildren(...items);
}

const saveConversation = () =>
  state.memory.stored.put(
    TENANT,
    { id: CONVERSATION, expiresMs: FOREVER_MS, owners: [], about: null },
    JSON.stringify(state.messages),
  );

async function send(content) {
  const { model, messages } = state;
  messages.push({ role: 'user', content }, { role: 'assistant', content: '' });
  const answer = messages.at(-1);
  showMessages();
  const element = find('messages').lastElementChild;
  state.abort = new AbortController();
  find('stop').disabled = false;
  find('send').disabled = true;
  try {
    // A model without a chat template continues the text.
    const hasTemplate = ['file', 'custom'].includes(model.modelInfo().chatTemplate);
    const prompt = hasTemplate ? messages.slice(0, -1) : content;
    const wish = hasTemplate ? { memory: { k: 3 } } : {};
    for await (const chunk of model.generateStream(prompt, {
      maxTokens: 256,
      clampMaxTokens: true,
      ...wish,
      signal: state.abort.signal,
    })) {
      answer.content += chunk.text;
      element.textContent = answer.content;
      if (chunk.finishReason !== null) {
        const { promptTokens, cachedTokens } = chunk.usage;
        find('timing').textContent =
          `${cachedTokens} of ${promptTokens} prompt tokens came from the prefix cache; ${chunk.timings.tokensPerSecond.toFixed(1)} tokens/s.`;
      }
    }
  } catch (error) {
    if (error.code !== 'aborted') throw error;
  } finally {
    if (answer.content === '') messages.pop();
    find('stop').disabled = true;
    find('send').disabled = !model.isLoaded();
    await saveConversation();
  }
}

async function showNotes() {
  const { records } = await state.memory.store.find(TENANT, { kinds: ['fact'], order: 'newest', limit: 50 });
  const items = records.map(({ body }) => {
    const item = document.createElement('li');
    item.textContent = body.text;
    return item;
  });
  find('notes').replaceChildren(...items);
}

function listen() {
  const drop = find('drop');
  drop.addEventListener('dragover', (event) => {
    event.preventDefault();
    drop.classList.add('is-over');
  });
  drop.addEventListener('dragleave', () => drop.classList.remove('is-over'));
  drop.addEventListener('drop', (event) => {
    event.preventDefault();
    drop.classList.remove('is-over');
    const [file] = event.dataTransfer.files;
    if (file !== undefined) void attempt(() => add(file));
  });
  find('file').addEventListener('change', (event) => {
    const [file] = event.target.files;
    if (file !== undefined) void attempt(() => add(file));
  });
  const onSubmit = (id, run) =>
    find(id).addEventListener('submit', (event) => {
      event.preventDefault();
      void attempt(run);
    });
  onSubmit('address-form', () => add(new URL(find('address').value, location.href)));
  onSubmit('chat', async () => {
    const text = find('message').value;
    find('message').value = '';
    await send(text);
  });
  onSubmit('note-form', async () => {
    await state.memory.add(TENANT, { text: find('note').value, kind: 'fact' });
    find('note').value = '';
    await showNotes();
  });
  find('stop').addEventListener('click', () => state.abort?.abort());
  find('clear').addEventListener('click', () => {
    state.messages = [];
    showMessages();
    void attempt(saveConversation);
  });
}

/** So that the page opens without a network. Without service workers it needs one. */
async function keepPage() {
  if (navigator.serviceWorker === undefined) return;
  await navigator.serviceWorker.register('sw.js');
  const { active } = await navigator.serviceWorker.ready;
  const kept = new Promise((resolve) => navigator.serviceWorker.addEventListener('message', resolve, { once: true }));
  const loaded = performance.getEntriesByType('resource').map(({ name }) => name);
  active.postMessage([location.href, ...loaded.filter((url) => new URL(url).origin === location.origin)]);
  await kept;
}

async function start() {
  listen();
  await keepPage().catch(() => {}); // without it the page works, with a network
  state.key = await openDeviceKey();
  state.memory = await openMemory({ key: state.key });
  const stored = await state.memory.stored.read(TENANT, CONVERSATION);
  if (stored !== null) state.messages = JSON.parse(stored.text);
  showMessages();
  await showNotes();
  await showModels();
  const last = localStorage.getItem(LAST_MODEL);
  const models = await listModels();
  if (models.some(({ name, isComplete }) => isComplete && name === last)) await openModel(last);
  else say('Choose a model to begin.');
}

await attempt(start);
