package hub

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// preferred are the formats that are taken from a repository of GGUF files when nothing is asked for.
var preferred = []string{"q4_k_m", "q4_k_s", "q4_0", "q5_k_m", "q8_0"}

// choose says which files of a repository make a model: one GGUF file (with its shards), or the safetensors with
// what describes them. pick is a format such as Q4_K_M, or a file's name; "" leaves it to us.
func choose(files []string, pick string) ([]string, error) {
	tensors := slices.ContainsFunc(files, func(f string) bool { return strings.HasSuffix(f, ".safetensors") })
	ggufs := slices.ContainsFunc(files, func(f string) bool { return isGGUF(f) })
	switch {
	case pick != "" || !tensors && ggufs:
		file, err := chooseGGUF(files, pick)
		if err != nil {
			return nil, err
		}
		return shards(files, file), nil
	case tensors:
		return slices.DeleteFunc(slices.Clone(files), func(f string) bool { return !describes(f) }), nil
	}
	return nil, fmt.Errorf("it has neither GGUF nor safetensors files (%s)", few(files))
}

func isGGUF(file string) bool {
	base := strings.ToLower(path.Base(file))
	return strings.HasSuffix(base, ".gguf") && !strings.HasPrefix(base, "mmproj") && !strings.Contains(base, "imatrix")
}

// describes reports whether a file belongs to a model in safetensors: the weights, and the small files around them.
func describes(file string) bool {
	if dir := path.Dir(file); dir != "." && !strings.HasSuffix(dir, "_Pooling") && !strings.HasSuffix(dir, "_Dense") {
		return false
	}
	base := path.Base(file)
	switch base {
	case "vocab.txt", "merges.txt", "vocab.json":
		return true
	}
	ext := path.Ext(base)
	if ext == ".safetensors" {
		return !strings.HasPrefix(base, "consolidated")
	}
	return slices.Contains([]string{".json", ".jinja", ".model"}, ext) || strings.HasPrefix(base, "tekken")
}

var shardForm = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?i)-(\d{5})-of-(\d{5})\.gguf$`) })

// shards lists the files of the set that file belongs to.
func shards(files []string, file string) []string {
	m := shardForm().FindStringSubmatchIndex(file)
	if m == nil {
		return []string{file}
	}
	var set []string
	for _, f := range files {
		k := shardForm().FindStringSubmatchIndex(f)
		if k != nil && f[:k[0]] == file[:m[0]] && f[k[4]:k[5]] == file[m[4]:m[5]] {
			set = append(set, f)
		}
	}
	slices.Sort(set)
	return set
}

// chooseGGUF returns the GGUF file (the first of a set) that pick names.
func chooseGGUF(files []string, pick string) (string, error) {
	var all []string
	for _, f := range files {
		if m := shardForm().FindStringSubmatch(f); isGGUF(f) && (m == nil || m[1] == "00001") {
			all = append(all, f)
		}
	}
	slices.Sort(all)
	if pick == "" {
		if len(all) == 1 {
			return all[0], nil
		}
		for _, p := range preferred {
			if i := slices.IndexFunc(all, func(f string) bool { return hasFormat(f, p) }); i >= 0 {
				return all[i], nil
			}
		}
		return "", fmt.Errorf("it has several GGUF files: name one's format behind a colon (%s)", few(all))
	}
	for _, match := range []func(string) bool{
		func(f string) bool { return strings.EqualFold(path.Base(f), pick) },
		func(f string) bool { return strings.EqualFold(strings.TrimSuffix(path.Base(f), ".gguf"), pick) },
		func(f string) bool { return hasFormat(f, pick) },
	} {
		if i := slices.IndexFunc(all, match); i >= 0 {
			return all[i], nil
		}
	}
	return "", fmt.Errorf("it has no GGUF file of format or name %.80q (%s)", pick, few(all))
}

// hasFormat reports whether a file's name ends with a format's, shards aside.
func hasFormat(file, format string) bool {
	name := strings.ToLower(path.Base(file))
	if m := shardForm().FindStringIndex(name); m != nil {
		name = name[:m[0]]
	}
	name = strings.TrimSuffix(name, ".gguf")
	rest, ok := strings.CutSuffix(name, strings.ToLower(format))
	return ok && (rest == "" || strings.ContainsAny(rest[len(rest)-1:], "-._"))
}

// few shows the first of many names.
func few(names []string) string {
	const most = 12
	if len(names) == 0 {
		return "there are none"
	}
	s := strings.Join(names[:min(len(names), most)], ", ")
	if len(names) > most {
		s += fmt.Sprintf(" and %d more", len(names)-most)
	}
	return s
}
