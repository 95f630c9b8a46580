export { openFileSink, type FileSink } from './file-sink.ts';
