// Chat with a model in this tab: model, prefix cache, conversation, notes and lessons are kept in the storage of the page.
import {
  detectCapabilities,
  listModels,
  loadModel,
  openDeviceKey,
  openLearning,
  openMemory,
  removeModel,
  RuvLLMError,
  storeModel,
} from './ruvllm/index.js';

const TENANT = 'local';
const CONVERSATION = 'conversation';
const LAST_MODEL = 'last-model';
const FOREVER_MS = Date.UTC(9999, 0);
/** Steps of one lesson: each is small, so that other answers stay as they are. */
const MAX_STEPS = 24;

const find = (id) => document.getElementById(id);
const state = { key: null, memory: null, learning: null, model: null, modelName: '', messages: [], abort: null };

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
  allow(false);
  const { key, memory, learning } = state;
  const options = { kvSpill: { key }, memory, learning, modelName: name, onProgress: showProgress };
  state.model = await loadModel(name, options);
  state.modelName = name;
  state.model.onLost((error) => {
    allow(false);
    report(error);
    say('No model is loaded.');
  });
  localStorage.setItem(LAST_MODEL, name);
  allow(true);
  const { isIsolated, numThreads } = detectCapabilities();
  const threads = isIsolated ? `${numThreads} threads` : '1 thread (the page is not cross-origin isolated)';
  say(`${name} is ready: ${threads}.`);
}

/** Whether messages can be sent, and the last answer be corrected. */
function allow(isReady) {
  find('send').disabled = !isReady;
  find('teach').disabled = !isReady || state.messages.at(-1)?.role !== 'assistant';
  find('unlearn').disabled = !isReady;
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

/** The prompt of a conversation, and how it is answered: always with the likeliest words, so that a lesson can be seen. */
function promptOf(messages) {
  // A model without a chat template continues the text.
  const hasTemplate = ['file', 'custom'].includes(state.model.modelInfo().chatTemplate);
  const options = { temperature: 0, clampMaxTokens: true, ...(hasTemplate ? { memory: { k: 3 } } : {}) };
  return { prompt: hasTemplate ? messages : messages.at(-1).content, options, hasTemplate };
}

async function send(content) {
  const { model, messages } = state;
  messages.push({ role: 'user', content }, { role: 'assistant', content: '' });
  const answer = messages.at(-1);
  showMessages();
  const element = find('messages').lastElementChild;
  state.abort = new AbortController();
  find('stop').disabled = false;
  allow(false);
  try {
    const { prompt, options } = promptOf(messages.slice(0, -1));
    for await (const chunk of model.generateStream(prompt, {
      ...options,
      maxTokens: 256,
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
    allow(model.isLoaded());
    await saveConversation();
  }
}

/** Asks the last question again and corrects the answer, until the model gives the right one by itself. */
async function teach(text) {
  const { model, learning, messages } = state;
  const { prompt, options, hasTemplate } = promptOf(messages.slice(0, -1));
  const correction = hasTemplate || /^\s/.test(text) ? text : ` ${text}`;
  allow(false);
  try {
    for (let step = 1; step <= MAX_STEPS; step++) {
      const requestId = crypto.randomUUID();
      await model.generate(prompt, { ...options, maxTokens: 16, requestId });
      await learning.settle();
      const { learned } = await learning.feedback(TENANT, { requestId, correction });
      const { outcome, reason } = await learned;
      find('lesson').textContent = `Step ${step}: ${outcome}: ${reason}`;
      if (outcome !== 'learned') break;
    }
  } finally {
    allow(model.isLoaded());
  }
}

async function unlearn() {
  await state.learning.rollback(TENANT, state.modelName, 0);
  find('lesson').textContent = 'The model answers as its file does.';
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
  onSubmit('teach-form', () => teach(find('correction').value));
  find('unlearn').addEventListener('click', () => void attempt(unlearn));
  onSubmit('note-form', async () => {
    await state.memory.add(TENANT, { text: find('note').value, kind: 'fact' });
    find('note').value = '';
    await showNotes();
  });
  find('stop').addEventListener('click', () => state.abort?.abort());
  find('clear').addEventListener('click', () => {
    state.messages = [];
    allow(state.model?.isLoaded() === true);
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
  // The browser does not list the icon among the resources.
  const linked = Array.from(document.querySelectorAll('link[href]'), ({ href }) => href);
  const loaded = performance.getEntriesByType('resource').map(({ name }) => name);
  const urls = [...new Set([location.href, ...linked, ...loaded])];
  active.postMessage(urls.filter((url) => new URL(url).origin === location.origin));
  await kept;
}

async function start() {
  listen();
  await keepPage().catch(() => {}); // without it the page works, with a network
  state.key = await openDeviceKey();
  state.memory = await openMemory({ key: state.key });
  // Each correction changes the weights. By default they change only when a correction repeats, and the prompt shows it before.
  state.learning = await openLearning({ memory: state.memory, corrections: false });
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
