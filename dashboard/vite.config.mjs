import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vite';

const here = (path) => fileURLToPath(new URL(path, import.meta.url));

export default defineConfig({
  root: here('.'),
  base: '/',
  publicDir: here('public'),
  build: {
    outDir: here('../dist/dashboard'),
    emptyOutDir: true,
    manifest: true,
    target: 'es2023',
    // Keeps light-dark() as written; older targets would expand it into variables.
    cssTarget: ['chrome123', 'firefox120', 'safari17.5'],
    assetsInlineLimit: 0,
    // The polyfill would cost one more request, and the supported browsers all have modulepreload.
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
  server: { proxy: { '^/(v1|admin|dashboard\\.json|health|props|slots|metrics|engine)': 'http://127.0.0.1:8080' } },
});
