// Keeps the files of this page, so that it opens without a network. Models are in the storage of the page, not here.
const CACHE = 'ruvllm-example-1';

self.addEventListener('install', () => self.skipWaiting());
self.addEventListener('activate', (event) => event.waitUntil(self.clients.claim()));

self.addEventListener('message', (event) => {
  // Files that the page loaded before this worker saw its requests.
  event.waitUntil(
    caches.open(CACHE).then(async (cache) => {
      await Promise.all(event.data.map((url) => cache.add(url).catch(() => {})));
      event.source.postMessage('kept');
    }),
  );
});

self.addEventListener('fetch', (event) => {
  const { request } = event;
  const { origin, pathname } = new URL(request.url);
  if (request.method !== 'GET' || origin !== location.origin || pathname.endsWith('.gguf')) return;
  event.respondWith(answer(request));
});

/** The network first: an update of the page is not hidden by its old files. */
async function answer(request) {
  const cache = await caches.open(CACHE);
  try {
    const response = await fetch(request);
    if (response.ok) await cache.put(request, response.clone());
    return response;
  } catch (error) {
    const kept = await cache.match(request, { ignoreSearch: true });
    if (kept === undefined) throw error;
    return kept;
  }
}
