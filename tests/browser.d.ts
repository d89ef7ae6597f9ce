// What browsers have and the compilers of some distributions do not know yet.
interface WakeLockSentinel extends EventTarget { readonly released: boolean; release(): Promise<void>; }
interface Navigator { readonly wakeLock: { request(kind: 'screen'): Promise<WakeLockSentinel> }; }
interface CanvasPath { roundRect(x: number, y: number, width: number, height: number, radii?: number): void; }
