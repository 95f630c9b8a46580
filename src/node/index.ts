export { readDashboardFiles } from './server/dashboard-files.ts';
export { createFileSink, type FileSink } from '../platform/node/files/file-sink.ts';
export { openFileSource } from '../platform/node/files/file-source.ts';
export { createNodeHubPlatform } from '../platform/node/process/hub-platform.ts';
export { openKeyFolder } from './server/key-folder.ts';
export { openModelFile } from '../platform/node/files/open-model-file.ts';
export { createNodeWasmPlatform } from '../platform/node/kernels/wasm-platform.ts';
export { listen, type Listening, type ListenOptions } from './server/serve.ts';
