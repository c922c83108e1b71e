package vfs

import (
	"errors"
	"io/fs"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/windows"
)

func openFile(path string) (opened, error) {
	file, err := openHandle(path, windows.FILE_FLAG_NO_BUFFERING)
	if err == nil {
		return opened{file: file, align: defaultAlign}, nil
	}
	if !refusesDirect(err) {
		return opened{}, err
	}
	file, err = openHandle(path, 0)
	if err != nil {
		return opened{}, err
	}
	return opened{file: file, align: 1, why: "the file system refuses unbuffered reads; Windows keeps them in its cache"}, nil
}

// openHandle opens for overlapped reads, as others on one handle wait for each other.
func openHandle(path string, flags uint32) (*os.File, error) {
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	share := uint32(windows.FILE_SHARE_READ | windows.FILE_SHARE_WRITE | windows.FILE_SHARE_DELETE)
	h, err := windows.CreateFile(name, windows.GENERIC_READ, share, nil, windows.OPEN_EXISTING,
		flags|windows.FILE_FLAG_OVERLAPPED, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(h), path), nil
}

// overlaps keeps what the kernel writes to on the heap: a stack may move during a read.
var overlaps = sync.Pool{New: func() any { return new(windows.Overlapped) }}

// readOnce is one overlapped read, waited for. The end of the file is 0, nil.
func readOnce(file *os.File, p []byte, off int64) (n int, err error) {
	err = control(file, func(fd uintptr) error {
		n, err = readHandle(windows.Handle(fd), p, off)
		return err
	})
	return n, err
}

func readHandle(h windows.Handle, p []byte, off int64) (int, error) {
	event, err := windows.CreateEvent(nil, 1, 0, nil)
	if err != nil {
		return 0, err
	}
	defer windows.CloseHandle(event)
	ov := overlaps.Get().(*windows.Overlapped)
	defer overlaps.Put(ov)
	// The low bit of the event keeps the completion from the port that the Go runtime waits on.
	*ov = windows.Overlapped{Offset: uint32(off), OffsetHigh: uint32(off >> 32), HEvent: event | 1}
	var n uint32
	p = p[:min(len(p), 1<<30)]
	err = windows.ReadFile(h, p, nil, ov)
	if err == nil || errors.Is(err, windows.ERROR_IO_PENDING) {
		err = windows.GetOverlappedResult(h, ov, &n, true)
	}
	if errors.Is(err, windows.ERROR_HANDLE_EOF) {
		return 0, nil
	}
	return int(n), err
}

func refusesDirect(err error) bool {
	return errors.Is(err, windows.ERROR_INVALID_PARAMETER) || errors.Is(err, windows.ERROR_NOT_SUPPORTED)
}

// setBuffered cannot change an open handle here; such a read fails.
func setBuffered(*os.File) error { return errors.ErrUnsupported }

// dropBehind does nothing: Windows has no such advice.
func dropBehind(*os.File, int64, int) {}

func fileID(file *os.File, info fs.FileInfo) (ID, error) {
	var d syscall.ByHandleFileInformation
	err := control(file, func(fd uintptr) error {
		return syscall.GetFileInformationByHandle(syscall.Handle(fd), &d)
	})
	if err != nil {
		return ID{}, err
	}
	return ID{
		Dev:   uint64(d.VolumeSerialNumber),
		Inode: uint64(d.FileIndexHigh)<<32 | uint64(d.FileIndexLow),
		MTime: info.ModTime().UnixNano(),
		Size:  info.Size(),
	}, nil
}

// DropCache is not possible on Windows.
func DropCache(string) error { return errors.ErrUnsupported }
