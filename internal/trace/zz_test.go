package trace
import ("testing";"fmt";"github.com/spillway/spillway/internal/trace/skew")
func TestZZ(t *testing.T){
 for _,x:=range []*Trace{open(t,small),whole(t),making(8, 400, skew.Skew{Experts: 64, Used: 8, Zipf: 0.8, Keep: 0.6, Seed: 1}).load(t),making(8, 1200, skew.Skew{Experts: 64, Used: 8, Zipf: 0.8, Keep: 0.6, Seed: 1}).load(t),making(8, 400, skew.Skew{Experts: 64, Used: 8, Zipf: 0.8, Keep: 0.25, Seed: 1}).load(t)}{
 out:=x.replay(t,Setting{Policies: []string{"lru","lfu","adaptive"}, Slots: x.sizes(1, 2, 3, 4, 6, 8, 12)})
 for p:=range 3 { for i:=p;i<len(out);i+=3 { fmt.Printf(" %5.1f",100*out[i].HitRate())}; fmt.Println("",out[p].Policy)}
 }}
